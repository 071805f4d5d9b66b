#include "part.p4"
const bit<8> whole = included;
