// JavaScript values to plain C++ ones, or the exception that says what was expected and given.
#pragma once

#include <napi.h>

#include <cstdint>
#include <string>

#include "include/tensor-view.h"

namespace trilithon::binding {

inline constexpr int64_t max_safe_integer = (int64_t{1} << 53) - 1;

// What a value is, for messages: "a string", "the number 1.5", "undefined".
std::string describe(const Napi::Value& value);

int64_t to_integer(Napi::Env env, const char* op, const char* argument, const Napi::Value& value, int64_t low, int64_t high);

// An array of at most max_rank whole numbers in [low, 2^53); returns how many.
int to_integers(Napi::Env env, const char* op, const char* argument, const Napi::Value& value, int64_t low, int64_t* numbers);

DType to_dtype(Napi::Env env, const char* op, const Napi::Value& value);

// The memory behind a typed array.
struct Bytes {
  void* data = nullptr;
  size_t size = 0;
  napi_typedarray_type type = napi_uint8_array;
  bool shared = false;
};

// Refuses what is not a typed array, and one whose buffer has been detached.
Bytes to_bytes(Napi::Env env, const char* op, const char* argument, const Napi::Value& value);

// Whether elements of this typed array are stored as `dtype` is; a Uint8Array is raw bytes and fits any.
bool fits(napi_typedarray_type type, DType dtype);

}  // namespace trilithon::binding
