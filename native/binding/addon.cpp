// Entrance of the addon: one table of functions per JavaScript environment (main thread and each worker).
#include <napi.h>

#include "binding/machine.h"

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("describeMachine", Napi::Function::New<trilithon::binding::describe_machine>(env, "describeMachine"));
  return exports;
}

}  // namespace

NODE_API_MODULE(trilithon_native, initialise)
