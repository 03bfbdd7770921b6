#include <cmath>
#include <vector>

#include "ops/muon/muon.h"

namespace trilithon::muon {
namespace {

template <typename T>
struct Matrix {
  int64_t rows, columns;
  std::vector<T> values;

  Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c), T(0)) {}
  T& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
  T at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * columns + c)]; }

  Matrix transposed() const {
    Matrix result(columns, rows);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) result.at(c, r) = at(r, c);
    }
    return result;
  }
};

template <typename T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> result(a.rows, b.columns);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t c = 0; c < b.columns; ++c) result.at(r, c) += a.at(r, k) * b.at(k, c);
    }
  }
  return result;
}

template <typename T>
Matrix<T> orthogonalised(const Matrix<T>& direction, double epsilon) {
  Matrix<T> x = direction.rows > direction.columns ? direction.transposed() : direction;
  T squares = 0;
  for (const T value : x.values) squares += value * value;
  for (T& value : x.values) value /= std::sqrt(squares) + T(epsilon);
  for (const Coefficients& coefficients : iterations) {
    const Matrix<T> gram = product(x, x.transposed());
    Matrix<T> mixed = product(gram, gram);
    for (size_t i = 0; i < mixed.values.size(); ++i)
      mixed.values[i] = T(coefficients.b) * gram.values[i] + T(coefficients.c) * mixed.values[i];
    const Matrix<T> turned = product(mixed, x);
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = T(coefficients.a) * x.values[i] + turned.values[i];
  }
  return direction.rows > direction.columns ? x.transposed() : x;
}

}  // namespace

template <typename T>
void step_reference(const Step& a) {
  const int64_t rows = a.param.shape[a.param.rank - 2], columns = a.param.shape[a.param.rank - 1], size = rows * columns;
  for (int64_t first = 0; first < a.param.elements(); first += size) {
    Matrix<T> direction(rows, columns);
    for (int64_t i = 0; i < size; ++i) {
      const T gradient = a.gradient.as<T>()[first + i] * T(a.gradient_scale);
      T& velocity = a.velocity.as<T>()[first + i];
      velocity = T(a.momentum) * velocity + gradient;
      direction.values[static_cast<size_t>(i)] = a.nesterov ? T(a.momentum) * velocity + gradient : velocity;
    }
    const Matrix<T> x = orthogonalised(direction, a.epsilon);
    for (int64_t i = 0; i < size; ++i) {
      T& param = a.param.as<T>()[first + i];
      param = param * T(1 - a.learning_rate * a.weight_decay) - T(a.update_rate) * x.values[static_cast<size_t>(i)];
    }
  }
}

template void step_reference<float>(const Step&);
template void step_reference<double>(const Step&);

}  // namespace trilithon::muon
