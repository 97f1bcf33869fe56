int run(int x) {
  return x;
}
