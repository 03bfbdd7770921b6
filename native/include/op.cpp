#include "include/op.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "include/check.h"

namespace trilithon {
namespace {

std::string dtype_list(DTypeSet set) {
  std::string text;
  for (int i = 0; i < dtype_count; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (set.has(dtype)) text += (text.empty() ? "" : " or ") + std::string(dtype_name(dtype));
  }
  return text;
}

// Slices of different columns of one matrix interleave in memory without sharing an element.
bool separate_columns(const TensorView& a, const TensorView& b) {
  if (a.rank < 2 || b.rank < 2 || !a.contiguous(1) || !b.contiguous(1)) return false;
  const int64_t step = a.stride[0] * static_cast<int64_t>(dtype_size(a.dtype));
  if (step != b.stride[0] * static_cast<int64_t>(dtype_size(b.dtype))) return false;
  const int64_t width_a = a.row_elements() * static_cast<int64_t>(dtype_size(a.dtype));
  const int64_t width_b = b.row_elements() * static_cast<int64_t>(dtype_size(b.dtype));
  const int64_t distance = static_cast<char*>(b.data) - static_cast<char*>(a.data);
  const int64_t offset = ((distance % step) + step) % step;
  return offset >= width_a && offset + width_b <= step;
}

bool overlaps(const TensorView& a, const TensorView& b) {
  const char* begin_a = static_cast<const char*>(a.data);
  const char* begin_b = static_cast<const char*>(b.data);
  if (begin_a + span_bytes(a) <= begin_b || begin_b + span_bytes(b) <= begin_a) return false;
  return !separate_columns(a, b);
}

// Elements from the first to one past the last of a row.
int64_t row_span(const TensorView& view) {
  int64_t last = 0;
  for (int i = 1; i < view.rank; ++i) last += (view.shape[i] - 1) * view.stride[i];
  return last + 1;
}

// Whether no two elements share a place, as far as sizes and strides >= 0 tell: seen from the smallest stride, each step
// reaches beyond all that lies inside it.
bool elements_apart(const TensorView& view) {
  bool done[max_rank] = {};
  int64_t reach = 0;
  for (int i = 0; i < view.rank; ++i) {
    int next = -1;
    for (int dim = 0; dim < view.rank; ++dim) {
      if (!done[dim] && (next < 0 || view.stride[dim] < view.stride[next])) next = dim;
    }
    done[next] = true;
    if (view.shape[next] <= 1) continue;
    if (view.stride[next] <= reach) return false;
    reach += (view.shape[next] - 1) * view.stride[next];
  }
  return true;
}

bool same_memory(const TensorView& a, const TensorView& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.stride[i] != b.stride[i])) return false;
  }
  return true;
}

Status check_tensor(const OpEntry& entry, const ArgSpec& spec, const TensorView& view) {
  if (!view.present()) {
    if (spec.has(optional)) return {};
    return invalid_argument(entry.name, spec.name, std::string("a tensor ") + spec.shape, "nothing");
  }
  if (!spec.dtypes.has(view.dtype)) {
    return invalid_argument(entry.name, spec.name, "dtype " + dtype_list(spec.dtypes), dtype_name(view.dtype));
  }
  if (!spec.has(maybe_empty) && view.elements() == 0) {
    return invalid_argument(entry.name, spec.name, std::string(spec.shape) + " with no zero among them", shape_text(view));
  }
  if (spec.has(any_strides)) {
    bool right = true;
    for (int i = 0; i < view.rank; ++i) right = right && view.stride[i] >= 0;
    if (right && (!spec.is_output() || elements_apart(view))) return {};
    return invalid_argument(entry.name, spec.name, right ? "elements in places of their own" : "strides of at least 0",
                            "shape " + shape_text(view) + " with strides " + strides_text(view));
  }
  if (!view.contiguous(spec.has(strided_heads) ? 2 : spec.has(strided_rows) ? 1 : 0)) {
    const char* wanted = spec.has(strided_heads)  ? "heads without gaps inside"
                         : spec.has(strided_rows) ? "rows without gaps"
                                                  : "a contiguous tensor";
    return invalid_argument(entry.name, spec.name, wanted, "shape " + shape_text(view) + " with strides " + strides_text(view));
  }
  const bool may_have_gaps = spec.has(strided_rows) || spec.has(strided_heads);
  if (may_have_gaps && view.rank > 1 && view.shape[0] > 1 && view.stride[0] < row_span(view)) {
    return invalid_argument(entry.name, spec.name, "rows that do not overlap",
                            "shape " + shape_text(view) + " with strides " + strides_text(view));
  }
  return {};
}

Status check_one_precision(const OpEntry& entry, const ArgValue* values) {
  int first = -1;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    if (!entry.args[i].is_tensor() || !(entry.args[i].dtypes == floats) || !values[i].tensor.present()) continue;
    if (first < 0) {
      first = static_cast<int>(i);
    } else if (values[i].tensor.dtype != values[first].tensor.dtype) {
      return invalid_argument(entry.name, entry.args[i].name,
                              std::string("dtype ") + dtype_name(values[first].tensor.dtype) + ", which " + entry.args[first].name + " has",
                              dtype_name(values[i].tensor.dtype));
    }
  }
  return {};
}

Status check_outputs_apart(const OpEntry& entry, const ArgValue* values) {
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgSpec& output = entry.args[i];
    if (!output.is_tensor() || !output.is_output() || !values[i].tensor.present()) continue;
    for (size_t j = 0; j < entry.args.size(); ++j) {
      if (j == i || !entry.args[j].is_tensor() || !values[j].tensor.present()) continue;
      if (!overlaps(values[i].tensor, values[j].tensor)) continue;
      const bool shareable = output.has(may_alias) && entry.args[j].has(may_alias) && !entry.args[j].is_output();
      if (shareable && same_memory(values[i].tensor, values[j].tensor)) continue;
      return invalid_argument(entry.name, output.name, "memory of its own", std::string("memory that ") + entry.args[j].name + " uses too");
    }
  }
  return {};
}

}  // namespace

int OpEntry::find(const char* arg_name) const {
  for (size_t i = 0; i < args.size(); ++i) {
    if (std::strcmp(args[i].name, arg_name) == 0) return static_cast<int>(i);
  }
  return -1;
}

Status check_values(const OpEntry& entry, const ArgValue* values) {
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgSpec& spec = entry.args[i];
    if (spec.is_tensor()) {
      if (Status status = check_tensor(entry, spec, values[i].tensor); !status.ok()) return status;
    } else if (spec.kind == ArgKind::number && !std::isfinite(values[i].number)) {
      return invalid_argument(entry.name, spec.name, "a finite number", number_text(values[i].number));
    }
  }
  if (Status status = check_one_precision(entry, values); !status.ok()) return status;
  return check_outputs_apart(entry, values);
}

const OpEntry* find_op(const char* name) {
  for (const OpEntry& entry : all_ops()) {
    if (std::strcmp(entry.name, name) == 0) return &entry;
  }
  return nullptr;
}

}  // namespace trilithon
