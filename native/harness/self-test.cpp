// The harness and the ground under the ops, tried before they are relied on.
#include <atomic>
#include <cfenv>
#include <cstring>

#include "harness/case.h"
#include "harness/columns.h"
#include "pool/arena.h"
#include "pool/float-environment.h"
#include "pool/tensor-table.h"
#include "pool/thread-pool.h"

namespace trilithon {
namespace {

enum class Fault {
  none,
  writes_behind,
  writes_into_gap,
  leaves_an_element,
  changes_input,
  depends_on_batch,
  depends_on_threads,
  depends_on_isa,
  wrong_value
};

Fault planted = Fault::none;

// y = 2 x, [rows, width], with the planted fault outside the reference.
struct Double {
  static constexpr const char* op = "self-test";
  static constexpr const char* name = "self-test.double";
  static constexpr const char* summary = "y = 2 x.";
  TensorView x, y;
  template <typename Visitor>
  void visit(Visitor& v) {
    v.input("x", x, floats, "[rows, width]", strided_rows);
    v.output("y", y, floats, "[rows, width]", strided_rows);
  }
};

template <typename T>
void double_rows(const Double& a) {
  for (int64_t r = 0; r < a.x.shape[0]; ++r) {
    for (int64_t i = 0; i < a.x.shape[1]; ++i) a.y.at<T>(r, i) = 2 * a.x.at<T>(r, i);
  }
}

Status run(const Double& a, Runtime& runtime) {
  with_floating(a.x.dtype, [&]<typename T>() { double_rows<T>(a); });
  if (runtime.use_reference(a.x.dtype)) return {};
  const int64_t rows = a.x.shape[0], width = a.x.shape[1];
  float& last = a.y.at<float>(rows - 1, width - 1);
  // One unit in the last place: far inside the tolerance, so that only a comparison of bits can see it.
  const float nudged = last * (1 + 0x1p-23f);
  switch (planted) {
    case Fault::none:
      break;
    case Fault::writes_behind:
      (&last)[1] = 0;
      break;
    case Fault::writes_into_gap:
      a.y.row<float>(0)[width] = 0;
      break;
    case Fault::leaves_an_element:
      std::memset(&last, 0xFF, sizeof last);
      break;
    case Fault::changes_input:
      a.x.at<float>(0, 0) += 1;
      break;
    case Fault::depends_on_batch:
      if (rows > 1) last = nudged;
      break;
    case Fault::depends_on_threads:
      if (runtime.threads() == 2) last = nudged;
      break;
    case Fault::depends_on_isa:
      if (runtime.isa() == Isa::avx2) last = nudged;
      break;
    case Fault::wrong_value:
      last *= 1.001f;
      break;
  }
  return {};
}

std::string planted_faults() {
  OpRegistry registry;
  add_entry<Double>(registry);
  Case item("self-test.double", "3x5");
  item.input("x", {3, 5}).output("y", {3, 5}).pitch("y", 9).rows({"x", "y"}).tolerance(1e-5);
  std::vector<Column> columns;
  columns.push_back(make_column(Isa::scalar, 1));
  columns.push_back(make_column(Isa::scalar, 2));
  columns.push_back(make_column(Isa::avx2, 1));
  const auto tried = [&](Fault fault) {
    planted = fault;
    const std::string problem = test_case(item, registry[0], columns, 1);
    planted = Fault::none;
    return problem;
  };
  if (const std::string problem = tried(Fault::none); !problem.empty()) return "a right op is refused: " + problem;
  const struct {
    Fault fault;
    const char* report;  // what the report has to say
  } faults[] = {{Fault::writes_behind, "behind its last element"},
                {Fault::writes_into_gap, "gap between rows"},
                {Fault::leaves_an_element, "y[2, 4]"},
                {Fault::changes_input, "changed its input"},
                {Fault::depends_on_batch, "alone"},
                {Fault::depends_on_threads, "scalar, 2 threads against"},
                {Fault::depends_on_isa, "avx2, 1 thread against"},
                {Fault::wrong_value, "y[2, 4] (element 14)"}};
  for (const auto& [fault, report] : faults) {
    const std::string problem = tried(fault);
    if (problem.find(report) == std::string::npos) {
      return "planted fault " + std::to_string(static_cast<int>(fault)) + " was reported as \"" + problem + "\"";
    }
  }
  return {};
}

// Asked by computing: fegetround() reads the x87 unit, which is not the one that computes.
bool rounds_to_nearest() {
  volatile float one = 1, tiny = 0x1p-25f;
  return one + tiny == 1 && -one - tiny == -1;
}

std::string thread_pool() {
  ThreadPool pool(4);
  struct Job {
    std::atomic<int64_t> sum{0};
    std::atomic<int> wrong_rounding{0};
    std::atomic<int32_t> abort{0};
  } job;
  const auto add = [](void* context, int64_t chunk, int) {
    Job& self = *static_cast<Job*>(context);
    self.sum += chunk;
    if (!rounds_to_nearest()) ++self.wrong_rounding;
    if (chunk == 50) self.abort = 1;
  };
  // The caller's own rounding must neither reach the job nor be lost.
  std::fesetround(FE_UPWARD);
  bool complete = true;
  for (int repeat = 0; repeat < 2000; ++repeat) complete = pool.run(40, add, &job, Profile::fp32, &job.abort) && complete;
  const bool kept = !rounds_to_nearest();
  std::fesetround(FE_TONEAREST);
  if (!complete || job.sum != 2000 * 780) return "the pool lost or repeated a chunk";
  if (job.wrong_rounding != 0) return "a chunk ran under another rounding mode";
  if (!kept) return "the caller's rounding mode was not put back";
  if (pool.run(100000, add, &job, Profile::fp32, &job.abort)) return "an abort did not stop the pool";
  return {};
}

std::string arena() {
  Arena memory(4 << 20);
  void* blocks[8];
  for (void*& block : blocks) {
    block = memory.allocate(100000);
    if (block == nullptr || reinterpret_cast<uintptr_t>(block) % Arena::alignment != 0) return "an arena gave no aligned block";
  }
  if (memory.allocate(8 << 20) != nullptr) return "an arena gave more than it has";
  for (const int i : {3, 1, 2, 0, 7, 5, 4, 6}) memory.release(blocks[i]);
  if (memory.used_bytes() != 0 || memory.largest_free_bytes() != memory.capacity_bytes()) return "freed blocks did not join";
  return {};
}

std::string handles() {
  TensorTable table(4 << 20, 5);
  const int64_t shape[] = {4, 4};
  TensorHandle first = 0, second = 0, part = 0;
  TensorView view;
  if (!table.create("t", DType::f32, 2, shape, first).ok() || !table.dispose("t", first).ok()) return "a tensor could not be made";
  if (!table.create("t", DType::f32, 2, shape, second).ok()) return "a tensor could not be made";
  const Status stale = table.find("t", "a", first, view);
  if (stale.ok() || stale.failure().code != ErrorCode::handle_disposed) return "a disposed handle was not recognised";
  const int64_t strides[] = {4, 1}, wide[] = {4, 5};
  if (table.view("t", second, 2, wide, strides, 0, part).ok()) return "a view reached outside its storage";
  if (TensorTable(4 << 20, 6).find("t", "a", second, view).ok()) return "a handle of another environment was accepted";
  return {};
}

}  // namespace

std::string self_test() {
  for (const auto check : {planted_faults, thread_pool, arena, handles}) {
    if (std::string problem = check(); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace trilithon
