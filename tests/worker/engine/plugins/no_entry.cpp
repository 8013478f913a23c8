// A library without the entry point.
extern "C" int something_else() { return 1; }
