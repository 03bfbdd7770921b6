// describeMachine(): what this process may compute with, as plain data.
#pragma once

#include <napi.h>

namespace trilithon::binding {

Napi::Value describe_machine(const Napi::CallbackInfo& info);

}  // namespace trilithon::binding
