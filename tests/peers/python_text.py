"""Python's own text for values, for tests/common/record/python_text_test.cpp.

python_text.py points            -> one JSON line [code point, repr] per assigned code point
python_text.py values FILE       -> FILE: a JSON list; one JSON line [str, repr] per value
python_text.py formats FILE      -> FILE: a JSON list of [value, spec]; one JSON line per formatted text
"""
import json
import sys
import unicodedata


def main():
    kind = sys.argv[1]
    if kind == "points":
        for point in range(0x110000):
            if unicodedata.category(chr(point)) not in ("Cn", "Cs"):
                print(json.dumps([point, repr(chr(point))]))
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        items = json.load(file)
    for item in items:
        if kind == "values":
            print(json.dumps([str(item), repr(item)]))
        else:
            print(json.dumps(format(item[0], item[1])))


if __name__ == "__main__":
    main()
