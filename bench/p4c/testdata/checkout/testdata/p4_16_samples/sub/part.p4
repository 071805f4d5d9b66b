const bit<8> included = 1;
