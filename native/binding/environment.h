// Environment: what the addon keeps per JavaScript environment (the main thread and each worker have their own).
#pragma once

#include <napi.h>

#include <memory>
#include <string>

#include "include/status.h"
#include "pool/runtime.h"
#include "pool/tensor-table.h"

namespace trilithon::binding {

class Environment {
 public:
  Environment();

  static Environment& of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  // The runtime of this environment, made on first use from the variables TRILITHON_ISA and TRILITHON_THREADS.
  Runtime& runtime(Napi::Env env);
  TensorTable& tensors(Napi::Env env);

  // configure({ profile, threads, memoryBytes, abortFlag }): replaces the runtime and the arena; refused while tensors live.
  void configure(const Napi::CallbackInfo& info);

  void set_error_factory(Napi::Function factory) { error_factory_ = Napi::Persistent(factory); }

  // A JavaScript error made by the factory that the loader set.
  Napi::Error make_error(Napi::Env env, const Failure& failure);

 private:
  unsigned number_;  // tells handles of different environments apart
  Profile profile_ = Profile::fp32;
  int threads_ = 0;          // 0: as TRILITHON_THREADS or the machine say
  double memory_bytes_ = 0;  // 0: as much as the machine has
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<TensorTable> tensors_;
  Napi::ObjectReference abort_array_;
  const std::atomic<int32_t>* abort_flag_ = nullptr;
  Napi::FunctionReference error_factory_;
};

// Throws the failure as a JavaScript exception; does nothing for success.
void throw_if_failed(Napi::Env env, const Status& status);

[[noreturn]] void throw_invalid(Napi::Env env, const char* op, const char* argument, const std::string& expected, const std::string& given);

}  // namespace trilithon::binding
