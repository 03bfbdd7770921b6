#include "ops/muon/muon.h"

#include <cmath>
#include <utility>

#include "include/check.h"
#include "pool/runtime.h"
#include "pool/scratch-arrays.h"

TRILITHON_DEFINE_KERNELS(muon)

namespace trilithon::muon {
namespace {

// Works through one matrix at a time; everything it needs lies in scratch that all of them share.
class MatrixStep {
 public:
  MatrixStep(const Step& args, int64_t rows, int64_t columns, Runtime& runtime)
      : args_(args), rows_(rows), columns_(columns), table_(kernels(runtime.profile(), runtime.isa())), runtime_(runtime) {}

  Status reserve() {
    ScratchArrays arrays;
    const int64_t side = std::min(rows_, columns_);
    arrays.add(x_, rows_ * columns_);
    arrays.add(next_, rows_ * columns_);
    arrays.add(gram_, side * side);
    arrays.add(mixed_, side * side);
    arrays.add(row_squares_, rows_);
    if (Status status = arrays.reserve(Step::name, runtime_); !status.ok()) return status;
    return reserve_thread_scratch(Step::name, runtime_, product_scratch_bytes);
  }

  Status run(int64_t matrix) {
    const int64_t first = matrix * rows_ * columns_, elements = rows_ * columns_;
    const MomentumParams params{args_.gradient.as<float>() + first,
                                args_.velocity.as<float>() + first,
                                x_,
                                row_squares_,
                                columns_,
                                static_cast<float>(args_.momentum),
                                static_cast<float>(args_.gradient_scale),
                                args_.nesterov};
    Status status = runtime_.parallel(Step::name, rows_, Runtime::grain(columns_ * 16),
                                      [&](int64_t begin, int64_t end, int) { table_.momentum(params, begin, end); });
    if (!status.ok()) return status;
    double squares = 0;
    for (int64_t row = 0; row < rows_; ++row) squares += static_cast<double>(row_squares_[row]);
    status = scale(x_, static_cast<float>(1 / (std::sqrt(squares) + args_.epsilon)), x_);
    for (const Coefficients& coefficients : iterations) {
      if (status.ok()) status = iterate(coefficients);
    }
    if (!status.ok()) return status;
    const float keep = static_cast<float>(1 - args_.learning_rate * args_.weight_decay), rate = static_cast<float>(args_.update_rate);
    return runtime_.parallel(Step::name, elements, Runtime::grain(12), [&](int64_t begin, int64_t end, int) {
      table_.apply(x_, keep, rate, args_.param.as<float>() + first, begin, end);
    });
  }

 private:
  // The smaller of X Xᵀ and Xᵀ X is used; a tall X is multiplied from the right, which is the same for its transpose.
  bool wide() const { return rows_ <= columns_; }

  Status iterate(const Coefficients& coefficients) {
    const int64_t side = std::min(rows_, columns_);
    Status status = wide() ? multiply(x_, x_, gram_, side, side, columns_, AForm::rows, BForm::transposed, false)
                           : multiply(x_, x_, gram_, side, side, rows_, AForm::columns, BForm::rows, false);
    if (status.ok()) status = multiply(gram_, gram_, mixed_, side, side, side, AForm::rows, BForm::rows, false);
    if (status.ok()) {
      const float b = static_cast<float>(coefficients.b), c = static_cast<float>(coefficients.c);
      status = runtime_.parallel(Step::name, side * side, Runtime::grain(12),
                                 [&](int64_t begin, int64_t end, int) { table_.mix(gram_, b, c, mixed_, begin, end); });
    }
    if (status.ok()) status = scale(x_, static_cast<float>(coefficients.a), next_);
    if (status.ok()) {
      status = wide() ? multiply(mixed_, x_, next_, rows_, columns_, rows_, AForm::rows, BForm::rows, true)
                      : multiply(x_, mixed_, next_, rows_, columns_, columns_, AForm::rows, BForm::rows, true);
    }
    std::swap(x_, next_);
    return status;
  }

  Status scale(const float* x, float factor, float* y) {
    return runtime_.parallel(Step::name, rows_ * columns_, Runtime::grain(8),
                             [&](int64_t begin, int64_t end, int) { table_.scale(x, factor, y, begin, end); });
  }

  // c [m, n] = a · b, or continued by it; all without gaps.
  Status multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k, AForm a_form, BForm b_form, bool accumulate) {
    const Product product{a, b, c, nullptr, a_form == AForm::rows ? k : m, b_form == BForm::rows ? n : k, n, k, a_form, b_form, accumulate};
    const ProductCut cut(m, n, k, b_form, runtime_.threads());
    return runtime_.parallel(Step::name, cut.parts(), 1, [&](int64_t part, int64_t, int thread) {
      table_.product(product, cut.block(part), static_cast<float*>(runtime_.scratch(thread, product_scratch_bytes)));
    });
  }

  const Step& args_;
  int64_t rows_, columns_;
  const Kernels& table_;
  Runtime& runtime_;
  float *x_ = nullptr, *next_ = nullptr, *gram_ = nullptr, *mixed_ = nullptr, *row_squares_ = nullptr;
};

}  // namespace

Status run(const Step& a, Runtime& runtime) {
  Check check(Step::name);
  check.that(a.param.rank >= 2, "param", "a matrix, or several", shape_text(a.param));
  check.same_shape("gradient", a.gradient, "param", a.param);
  check.same_shape("velocity", a.velocity, "param", a.param);
  const struct {
    const char* name;
    double value;
  } numbers[] = {{"learning_rate", a.learning_rate},
                 {"update_rate", a.update_rate},
                 {"momentum", a.momentum},
                 {"weight_decay", a.weight_decay},
                 {"epsilon", a.epsilon}};
  for (const auto& [name, value] : numbers) check.that(value >= 0, name, "a number >= 0", number_text(value));
  check.that(a.epsilon > 0, "epsilon", "a number above 0, so that a matrix of zeros has a norm", number_text(a.epsilon));
  if (!check.ok()) return check.status();

  const int64_t rows = a.param.shape[a.param.rank - 2], columns = a.param.shape[a.param.rank - 1], elements = a.param.elements();
  if (elements == 0) return {};
  if (runtime.use_reference(a.param.dtype)) {
    with_floating(a.param.dtype, [&]<typename T>() { step_reference<T>(a); });
    return {};
  }
  MatrixStep step(a, rows, columns, runtime);
  if (Status status = step.reserve(); !status.ok()) return status;
  for (int64_t matrix = 0; matrix < elements / (rows * columns); ++matrix) {
    if (Status status = step.run(matrix); !status.ok()) return status;
  }
  return {};
}

}  // namespace trilithon::muon

namespace trilithon {

void register_muon(OpRegistry& registry) { add_entry<muon::Step>(registry); }

}  // namespace trilithon
