// Tensors at the border: create, view, dispose, copy in and out.
#pragma once

#include <napi.h>

namespace trilithon::binding {

void export_tensors(Napi::Env env, Napi::Object exports);

}  // namespace trilithon::binding
