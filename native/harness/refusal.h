// A property: bad input is refused in words.
#pragma once

#include "harness/execute.h"

namespace trilithon {

// After `change` the call must fail, and its message contain `expected`.
inline Property refused(std::function<void(CaseData&)> change, std::string expected) {
  return [change, expected](const PropertyContext& context) -> std::string {
    CaseData data = context.data;
    change(data);
    const std::string message = context.refusal(data);
    return message.find(expected) != std::string::npos ? "" : "the refusal \"" + message + "\" does not say \"" + expected + "\"";
  };
}

}  // namespace trilithon
