#include "binding/convert.h"

#include <cmath>

#include "binding/environment.h"
#include "include/check.h"

namespace trilithon::binding {

std::string describe(const Napi::Value& value) {
  switch (value.Type()) {
    case napi_undefined:
      return "undefined";
    case napi_null:
      return "null";
    case napi_boolean:
      return value.As<Napi::Boolean>().Value() ? "true" : "false";
    case napi_number:
      return "the number " + number_text(value.As<Napi::Number>().DoubleValue());
    case napi_string:
      return "the string \"" + value.As<Napi::String>().Utf8Value().substr(0, 40) + "\"";
    case napi_symbol:
      return "a symbol";
    case napi_object:
      return value.IsTypedArray() ? "a typed array" : value.IsArray() ? "an array" : "an object";
    case napi_function:
      return "a function";
    case napi_external:
      return "an external value";
    case napi_bigint:
      return "a bigint";
  }
  return "something else";
}

int64_t to_integer(Napi::Env env, const char* op, const char* argument, const Napi::Value& value, int64_t low, int64_t high) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
  if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high)) || number != std::floor(number)) {
    throw_invalid(env, op, argument, "a whole number from " + std::to_string(low) + " to " + std::to_string(high), describe(value));
  }
  return static_cast<int64_t>(number);
}

int to_integers(Napi::Env env, const char* op, const char* argument, const Napi::Value& value, int64_t low, int64_t* numbers) {
  if (!value.IsArray()) throw_invalid(env, op, argument, "an array of whole numbers", describe(value));
  const Napi::Array array = value.As<Napi::Array>();
  const uint32_t length = array.Length();
  if (length > static_cast<uint32_t>(max_rank)) {
    throw_invalid(env, op, argument, "at most " + std::to_string(max_rank) + " dims", std::to_string(length));
  }
  for (uint32_t i = 0; i < length; ++i) numbers[i] = to_integer(env, op, argument, array.Get(i), low, max_safe_integer);
  return static_cast<int>(length);
}

DType to_dtype(Napi::Env env, const char* op, const Napi::Value& value) {
  std::string names;
  const std::string given = value.IsString() ? value.As<Napi::String>().Utf8Value() : std::string();
  for (int i = 0; i < dtype_count; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (given == dtype_name(dtype)) return dtype;
    names += (i > 0 ? ", " : "") + std::string(dtype_name(dtype));
  }
  throw_invalid(env, op, "dtype", "one of " + names, describe(value));
}

Bytes to_bytes(Napi::Env env, const char* op, const char* argument, const Napi::Value& value) {
  if (!value.IsTypedArray()) throw_invalid(env, op, argument, "a typed array", describe(value));
  Bytes bytes;
  size_t length = 0, offset = 0;
  napi_value buffer = nullptr;
  if (napi_get_typedarray_info(env, value, &bytes.type, &length, &bytes.data, &buffer, &offset) != napi_ok) {
    throw_invalid(env, op, argument, "a typed array", describe(value));
  }
  bytes.size = length * value.As<Napi::TypedArray>().ElementSize();
  bool plain = false;
  napi_is_arraybuffer(env, buffer, &plain);
  bytes.shared = !plain;
  if (plain) {
    bool detached = false;
    napi_is_detached_arraybuffer(env, buffer, &detached);
    if (detached) throw_invalid(env, op, argument, "a typed array with its buffer", "one whose buffer has been detached");
  }
  return bytes;
}

bool fits(napi_typedarray_type type, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return type == napi_float32_array || type == napi_uint8_array;
    case DType::f64:
      return type == napi_float64_array || type == napi_uint8_array;
    case DType::i32:
      return type == napi_int32_array || type == napi_uint8_array;
    case DType::i64:
      return type == napi_bigint64_array || type == napi_uint8_array;
    case DType::u32:
      return type == napi_uint32_array || type == napi_uint8_array;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return type == napi_uint16_array || type == napi_uint8_array;
    case DType::e4m3:
    case DType::e5m2:
    case DType::u8:
      return type == napi_uint8_array;
  }
  return false;
}

}  // namespace trilithon::binding
