// Entrance of the addon: one table of functions per JavaScript environment (main thread and each worker).
#include <napi.h>

#include "binding/environment.h"
#include "binding/machine.h"
#include "binding/ops.h"
#include "binding/tensors.h"

namespace trilithon::binding {
namespace {

void configure(const Napi::CallbackInfo& info) { Environment::of(info.Env()).configure(info); }

// setErrorFactory((code, message, details) => Error): called once by the loader.
void set_error_factory(const Napi::CallbackInfo& info) {
  if (info[0].IsFunction()) Environment::of(info.Env()).set_error_factory(info[0].As<Napi::Function>());
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Environment());
  exports.Set("describeMachine", Napi::Function::New<describe_machine>(env, "describeMachine"));
  exports.Set("configure", Napi::Function::New<configure>(env, "configure"));
  exports.Set("setErrorFactory", Napi::Function::New<set_error_factory>(env, "setErrorFactory"));
  export_tensors(env, exports);
  export_ops(env, exports);
  return exports;
}

}  // namespace
}  // namespace trilithon::binding

static Napi::Object initialise_addon(Napi::Env env, Napi::Object exports) { return trilithon::binding::initialise(env, exports); }

NODE_API_MODULE(trilithon_native, initialise_addon)
