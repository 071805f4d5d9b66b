bit<8> f(in bit<8> a) { return a; }
control c() {
    apply {
        bit<8> x = f(1, 2);
    }
}
