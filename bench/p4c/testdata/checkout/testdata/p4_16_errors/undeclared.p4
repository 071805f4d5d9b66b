control c() {
    apply {
        bit<8> x = missing;
    }
}
