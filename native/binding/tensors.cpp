#include "binding/tensors.h"

#include <cstring>
#include <memory>

#include "binding/convert.h"
#include "binding/environment.h"
#include "include/check.h"

namespace trilithon::binding {
namespace {

TensorHandle to_handle(Napi::Env env, const char* op, const char* argument, const Napi::Value& value) {
  return static_cast<TensorHandle>(to_integer(env, op, argument, value, 0, max_safe_integer));
}

Napi::Value from_handle(Napi::Env env, TensorHandle handle) { return Napi::Number::New(env, static_cast<double>(handle)); }

TensorView find_tensor(const Napi::CallbackInfo& info, const char* op) {
  TensorView view;
  const TensorHandle handle = to_handle(info.Env(), op, "tensor", info[0]);
  throw_if_failed(info.Env(), Environment::of(info.Env()).tensors(info.Env()).find(op, "tensor", handle, view));
  return view;
}

// createTensor(dtype, shape): handle. The elements are not initialised.
Napi::Value create_tensor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const char* op = "createTensor";
  int64_t shape[max_rank];
  const DType dtype = to_dtype(env, op, info[0]);
  const int rank = to_integers(env, op, "shape", info[1], 0, shape);
  TensorHandle handle = 0;
  throw_if_failed(env, Environment::of(env).tensors(env).create(op, dtype, rank, shape, handle));
  return from_handle(env, handle);
}

// viewTensor(source, shape, strides | null, offset): handle to the same storage.
Napi::Value view_tensor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const char* op = "viewTensor";
  const TensorHandle source = to_handle(env, op, "source", info[0]);
  int64_t shape[max_rank];
  int64_t strides[max_rank];
  const int rank = to_integers(env, op, "shape", info[1], 0, shape);
  const bool has_strides = !info[2].IsNull() && !info[2].IsUndefined();
  if (has_strides && to_integers(env, op, "strides", info[2], -max_safe_integer, strides) != rank) {
    throw_invalid(env, op, "strides", "as many strides as dims", "another number of them");
  }
  const int64_t offset = info[3].IsUndefined() ? 0 : to_integer(env, op, "offset", info[3], -max_safe_integer, max_safe_integer);
  TensorHandle handle = 0;
  throw_if_failed(env, Environment::of(env).tensors(env).view(op, source, rank, shape, has_strides ? strides : nullptr, offset, handle));
  return from_handle(env, handle);
}

// wrapShared(dtype, shape, typedArray): handle to memory of a SharedArrayBuffer, which is kept alive until the last view of
// it is disposed. A plain ArrayBuffer is refused: JavaScript may detach it while a kernel reads.
Napi::Value wrap_shared(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const char* op = "wrapShared";
  int64_t shape[max_rank];
  const DType dtype = to_dtype(env, op, info[0]);
  const int rank = to_integers(env, op, "shape", info[1], 0, shape);
  const Bytes bytes = to_bytes(env, op, "array", info[2]);
  if (!bytes.shared) throw_invalid(env, op, "array", "a typed array over a SharedArrayBuffer", "one over an ArrayBuffer");
  if (!fits(bytes.type, dtype))
    throw_invalid(env, op, "array", std::string("a typed array for ") + dtype_name(dtype), "another element type");
  double wanted = static_cast<double>(dtype_size(dtype));
  for (int i = 0; i < rank; ++i) wanted *= static_cast<double>(shape[i]);
  if (wanted != static_cast<double>(bytes.size)) {
    throw_invalid(env, op, "array", number_text(wanted) + " bytes for the shape", std::to_string(bytes.size) + " bytes");
  }
  if (reinterpret_cast<uintptr_t>(bytes.data) % dtype_size(dtype) != 0) {
    throw_invalid(env, op, "array", std::string("memory aligned for ") + dtype_name(dtype), "an odd offset");
  }
  auto reference = std::make_shared<Napi::ObjectReference>(Napi::Persistent(info[2].As<Napi::Object>()));
  TensorHandle handle = 0;
  throw_if_failed(env, Environment::of(env).tensors(env).wrap(
                           op, contiguous_view(bytes.data, dtype, rank, shape), [reference] { reference->Reset(); }, handle));
  return from_handle(env, handle);
}

void dispose_tensor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  throw_if_failed(env, Environment::of(env).tensors(env).dispose("disposeTensor", to_handle(env, "disposeTensor", "tensor", info[0])));
}

Napi::Value describe_tensor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const TensorView view = find_tensor(info, "describeTensor");
  Napi::Array shape = Napi::Array::New(env);
  Napi::Array strides = Napi::Array::New(env);
  for (int i = 0; i < view.rank; ++i) {
    shape.Set(static_cast<uint32_t>(i), static_cast<double>(view.shape[i]));
    strides.Set(static_cast<uint32_t>(i), static_cast<double>(view.stride[i]));
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("dtype", dtype_name(view.dtype));
  result.Set("shape", shape);
  result.Set("strides", strides);
  return result;
}

// Checks both sides of a copy and returns the number of bytes.
size_t copy_size(Napi::Env env, const char* op, const TensorView& view, const Bytes& bytes) {
  if (!view.contiguous()) {
    throw_invalid(env, op, "tensor", "a contiguous tensor", "shape " + shape_text(view) + " with strides " + strides_text(view));
  }
  if (!fits(bytes.type, view.dtype))
    throw_invalid(env, op, "array", std::string("a typed array for ") + dtype_name(view.dtype), "another element type");
  const size_t size = static_cast<size_t>(view.elements()) * dtype_size(view.dtype);
  if (size != bytes.size) {
    throw_invalid(env, op, "array", std::to_string(size) + " bytes, as " + dtype_name(view.dtype) + " " + shape_text(view) + " has",
                  std::to_string(bytes.size) + " bytes");
  }
  return size;
}

// writeTensor(tensor, typedArray)
void write_tensor(const Napi::CallbackInfo& info) {
  const TensorView view = find_tensor(info, "writeTensor");
  const Bytes bytes = to_bytes(info.Env(), "writeTensor", "array", info[1]);
  if (const size_t size = copy_size(info.Env(), "writeTensor", view, bytes); size > 0) std::memcpy(view.data, bytes.data, size);
}

// readTensor(tensor, typedArray)
void read_tensor(const Napi::CallbackInfo& info) {
  const TensorView view = find_tensor(info, "readTensor");
  const Bytes bytes = to_bytes(info.Env(), "readTensor", "array", info[1]);
  if (const size_t size = copy_size(info.Env(), "readTensor", view, bytes); size > 0) std::memcpy(bytes.data, view.data, size);
}

Napi::Value memory_stats(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const TensorTable& table = Environment::of(env).tensors(env);
  Napi::Object result = Napi::Object::New(env);
  result.Set("liveTensors", static_cast<double>(table.live_tensors()));
  result.Set("usedBytes", static_cast<double>(table.arena().used_bytes()));
  result.Set("peakBytes", static_cast<double>(table.arena().peak_bytes()));
  result.Set("capacityBytes", static_cast<double>(table.arena().capacity_bytes()));
  return result;
}

}  // namespace

void export_tensors(Napi::Env env, Napi::Object exports) {
  exports.Set("createTensor", Napi::Function::New<create_tensor>(env, "createTensor"));
  exports.Set("viewTensor", Napi::Function::New<view_tensor>(env, "viewTensor"));
  exports.Set("wrapShared", Napi::Function::New<wrap_shared>(env, "wrapShared"));
  exports.Set("disposeTensor", Napi::Function::New<dispose_tensor>(env, "disposeTensor"));
  exports.Set("describeTensor", Napi::Function::New<describe_tensor>(env, "describeTensor"));
  exports.Set("writeTensor", Napi::Function::New<write_tensor>(env, "writeTensor"));
  exports.Set("readTensor", Napi::Function::New<read_tensor>(env, "readTensor"));
  exports.Set("memoryStats", Napi::Function::New<memory_stats>(env, "memoryStats"));
}

}  // namespace trilithon::binding
