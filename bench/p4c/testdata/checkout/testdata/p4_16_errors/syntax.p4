control c() {
    apply {
        bit<8> = 1;
    }
}
