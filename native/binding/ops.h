// Every op entry as one JavaScript function, from its description.
#pragma once

#include <napi.h>

namespace trilithon::binding {

// exports.ops: { 'rms-norm.forward': function, ... }; exports.describeOps(): what they take, for the typed face.
void export_ops(Napi::Env env, Napi::Object exports);

}  // namespace trilithon::binding
