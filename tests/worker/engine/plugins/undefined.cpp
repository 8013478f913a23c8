// A library that needs a function which this program does not have.
extern "C" int function_of_another_version();
int call_it() { return function_of_another_version(); }
