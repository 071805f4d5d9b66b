// The workloads of go run ./bench on ns-3's simulator core with its
// PriorityQueueScheduler. Usage: agenda WORKLOAD PENDING OPS CHECK DELAYS; see
// the package comment of bench for the workloads and the line that is printed.
#include <ns3/core-module.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

std::vector<int64_t> delays;
uint64_t ops, check, done = 0, drawn = 0;
int64_t checked = 0;
timespec begin;

int64_t Draw() { return delays[drawn++ & (delays.size() - 1)]; }

// Count ends the run after the last operation.
void Count() {
  if (++done == check) checked = Simulator::Now().GetPicoSeconds();
  if (done < ops) return;
  timespec end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  double ns = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
  std::printf("%.2f %lld\n", ns / ops, static_cast<long long>(checked));
  std::fflush(stdout);
  std::_Exit(0);
}

void Hold(uint32_t actor) {
  Count();
  Simulator::Schedule(PicoSeconds(Draw()), &Hold, actor);
}

constexpr int64_t cycle = 1250;
std::vector<int64_t> cores(54, 0), engines(6, 0);

int64_t Book(int64_t& free, int64_t service) {
  int64_t now = Simulator::Now().GetPicoSeconds();
  free = std::max(now, free) + service;
  return free - now;
}

void Access(uint32_t actor);

void Think(uint32_t actor) {
  Count();
  int64_t service = cycle * (10 + Draw() % 40);
  Simulator::Schedule(PicoSeconds(Book(cores[actor / 8], service)), &Access, actor);
}

void Access(uint32_t actor) {
  Count();
  int64_t wait = Book(engines[Draw() % 6], 4 * cycle);
  Simulator::Schedule(PicoSeconds(wait + 100 * cycle), &Think, actor);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: agenda WORKLOAD PENDING OPS CHECK DELAYS\n");
    return 2;
  }
  std::string workload = argv[1];
  uint64_t pending = std::strtoull(argv[2], nullptr, 10);
  ops = std::strtoull(argv[3], nullptr, 10);
  check = std::strtoull(argv[4], nullptr, 10);
  std::ifstream file(argv[5], std::ios::binary);
  for (int64_t d; file.read(reinterpret_cast<char*>(&d), sizeof d);) delays.push_back(d);
  if (delays.empty()) {
    std::fprintf(stderr, "agenda: no delays in %s\n", argv[5]);
    return 1;
  }

  Time::SetResolution(Time::PS);
  ObjectFactory scheduler;
  scheduler.SetTypeId("ns3::PriorityQueueScheduler");
  Simulator::SetScheduler(scheduler);
  for (uint64_t i = 0; i < pending; i++) {
    if (workload == "hold")
      Simulator::Schedule(PicoSeconds(Draw()), &Hold, static_cast<uint32_t>(i));
    else
      Simulator::Schedule(PicoSeconds(0), &Think, static_cast<uint32_t>(i));
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  Simulator::Run();
  return 1;
}
