#include "binding/environment.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "binding/convert.h"
#include "include/check.h"
#include "isa/cpu-features.h"
#include "pool/core-count.h"

namespace trilithon::binding {
namespace {

std::atomic<unsigned> next_environment{1};

constexpr double smallest_arena = 64.0 * 1024 * 1024;

// Address space costs nothing until it is touched, so the limit is what the machine has.
double machine_memory_bytes() {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return pages > 0 && page > 0 ? pages * page : 4.0 * 1024 * 1024 * 1024;
}

}  // namespace

Environment::Environment() : number_(next_environment.fetch_add(1)) {}

Runtime& Environment::runtime(Napi::Env env) {
  if (runtime_) return *runtime_;
  const IsaChoice isa = choose_isa(cpu_features(), std::getenv("TRILITHON_ISA"));
  if (!isa.problem.empty()) throw_invalid(env, "runtime", "TRILITHON_ISA", "an instruction set that runs here", isa.problem);
  const ThreadChoice threads = choose_threads(count_cores(), std::getenv("TRILITHON_THREADS"));
  if (!threads.problem.empty()) throw_invalid(env, "runtime", "TRILITHON_THREADS", "a whole number from 1 to 1024", threads.problem);
  RuntimeOptions options;
  options.profile = profile_;
  options.isa = isa.isa;
  options.threads = threads_ > 0 ? threads_ : threads.threads;
  runtime_ = std::make_unique<Runtime>(options);
  runtime_->set_abort_flag(abort_flag_);
  return *runtime_;
}

TensorTable& Environment::tensors(Napi::Env env) {
  if (tensors_) return *tensors_;
  // A process may have a limit on address space; what was asked for by name is not cut down silently.
  double bytes = memory_bytes_ > 0 ? memory_bytes_ : machine_memory_bytes();
  for (;;) {
    auto table = std::make_unique<TensorTable>(static_cast<size_t>(bytes), number_);
    if (table->arena().capacity_bytes() > 0) {
      tensors_ = std::move(table);
      return *tensors_;
    }
    if (memory_bytes_ > 0 || bytes < smallest_arena) {
      throw make_error(env, {ErrorCode::memory_exhausted, "createTensor", "",
                             "to reserve " + number_text(bytes) + " bytes of address space", "a refusal"});
    }
    bytes /= 2;
  }
}

void Environment::configure(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const char* op = "configureNative";
  if (!info[0].IsObject()) throw_invalid(env, op, "options", "an object", describe(info[0]));
  const Napi::Object options = info[0].As<Napi::Object>();
  if (tensors_ && tensors_->live_tensors() > 0) {
    throw_invalid(env, op, "options", "no live tensors", std::to_string(tensors_->live_tensors()) + " of them");
  }

  Profile profile = profile_;
  int threads = threads_;
  double memory_bytes = memory_bytes_;
  if (const Napi::Value value = options.Get("profile"); !value.IsUndefined()) {
    const std::string name = value.IsString() ? value.As<Napi::String>().Utf8Value() : describe(value);
    int found = -1;
    for (int i = 0; i < profile_count; ++i) {
      if (name == profile_name(static_cast<Profile>(i))) found = i;
    }
    if (found < 0) throw_invalid(env, op, "profile", "fp32 or bf16", name);
    profile = static_cast<Profile>(found);
    if (const char* reason = profile_unsupported_reason(profile)) {
      throw make_error(env, {ErrorCode::kernel_unavailable, op, "profile", "a numerics profile with kernels", reason});
    }
  }
  if (const Napi::Value value = options.Get("threads"); !value.IsUndefined())
    threads = static_cast<int>(to_integer(env, op, "threads", value, 1, 1024));
  if (const Napi::Value value = options.Get("memoryBytes"); !value.IsUndefined()) {
    memory_bytes = static_cast<double>(to_integer(env, op, "memoryBytes", value, 1, max_safe_integer));
  }
  Napi::Value flag = options.Get("abortFlag");
  if (!flag.IsUndefined() && !flag.IsNull()) {
    const Bytes bytes = to_bytes(env, op, "abortFlag", flag);
    if (bytes.type != napi_int32_array || bytes.size < 4 || !bytes.shared) {
      throw_invalid(env, op, "abortFlag", "an Int32Array over a SharedArrayBuffer", describe(flag));
    }
    // Kept alive by the reference; the flag is written by another thread through Atomics.store.
    abort_array_ = Napi::Persistent(flag.As<Napi::Object>());
    abort_flag_ = static_cast<const std::atomic<int32_t>*>(bytes.data);
  } else if (flag.IsNull()) {
    abort_array_.Reset();
    abort_flag_ = nullptr;
  }
  profile_ = profile;
  threads_ = threads;
  if (memory_bytes != memory_bytes_) tensors_.reset();
  memory_bytes_ = memory_bytes;
  runtime_.reset();
}

Napi::Error Environment::make_error(Napi::Env env, const Failure& failure) {
  Napi::Object details = Napi::Object::New(env);
  details.Set("op", failure.op);
  if (!failure.argument.empty()) details.Set("argument", failure.argument);
  details.Set("expected", failure.expected);
  details.Set("given", failure.given);
  const Napi::String code = Napi::String::New(env, error_code_name(failure.code));
  const Napi::String message = Napi::String::New(env, failure.message());
  if (error_factory_.IsEmpty()) {
    Napi::Error error = Napi::Error::New(env, failure.message());
    error.Set("code", code);
    error.Set("details", details);
    return error;
  }
  return Napi::Error(env, error_factory_.Call({code, message, details}));
}

void throw_if_failed(Napi::Env env, const Status& status) {
  if (!status.ok()) throw Environment::of(env).make_error(env, status.failure());
}

void throw_invalid(Napi::Env env, const char* op, const char* argument, const std::string& expected, const std::string& given) {
  throw Environment::of(env).make_error(env, {ErrorCode::argument_invalid, op, argument, expected, given});
}

}  // namespace trilithon::binding
