#include "binding/machine.h"

#include <cstdlib>

#include "device/cuda-probe.h"
#include "generated/build-info.h"
#include "isa/dispatch.h"
#include "pool/core-count.h"

namespace trilithon::binding {
namespace {

// An absent value is null in JavaScript: JSON keeps it, and the typed face can say `string | null`.
Napi::Value text_or_null(Napi::Env env, const std::string& text) {
  return text.empty() ? env.Null() : static_cast<Napi::Value>(Napi::String::New(env, text));
}

Napi::Object instruction_sets(Napi::Env env, const CpuFeatures& f) {
  Napi::Object sets = Napi::Object::New(env);
  const auto put = [&](const char* name, bool present) { sets.Set(name, Napi::Boolean::New(env, present)); };
  put("sse4.2", f.sse4_2);
  put("avx2", f.avx2);
  put("fma", f.fma);
  put("f16c", f.f16c);
  put("avx512f", f.avx512f);
  put("avx512bw", f.avx512bw);
  put("avx512vl", f.avx512vl);
  put("avx512dq", f.avx512dq);
  put("avx512vnni", f.avx512vnni);
  put("avx512bf16", f.avx512bf16);
  put("avx512fp16", f.avx512fp16);
  put("amx-tile", f.amx_tile);
  put("amx-bf16", f.amx_bf16);
  put("amx-int8", f.amx_int8);
  return sets;
}

Napi::Array tables(Napi::Env env, const CpuFeatures& f) {
  Napi::Array list = Napi::Array::New(env);
  for (int i = 0; i < isa_count; ++i) {
    const Isa isa = static_cast<Isa>(i);
    Napi::Object table = Napi::Object::New(env);
    table.Set("name", isa_name(isa));
    table.Set("unsupportedReason", text_or_null(env, isa_unsupported_reason(isa, f)));
    list.Set(static_cast<uint32_t>(i), table);
  }
  return list;
}

Napi::Object cpu(Napi::Env env) {
  const CpuFeatures& f = cpu_features();
  const IsaChoice choice = choose_isa(f, std::getenv("TRILITHON_ISA"));
  Napi::Object result = Napi::Object::New(env);
  result.Set("vendor", f.vendor);
  result.Set("model", f.model);
  result.Set("instructionSets", instruction_sets(env, f));
  result.Set("amxReason", text_or_null(env, f.amx_reason));
  result.Set("tables", tables(env, f));
  result.Set("table", choice.problem.empty() ? static_cast<Napi::Value>(Napi::String::New(env, isa_name(choice.isa))) : env.Null());
  result.Set("tableReason", choice.problem.empty() ? choice.reason : choice.problem);
  return result;
}

Napi::Object cores(Napi::Env env) {
  const CoreCount count = count_cores();
  const ThreadChoice choice = choose_threads(count, std::getenv("TRILITHON_THREADS"));
  Napi::Object result = Napi::Object::New(env);
  result.Set("physical", count.physical);
  result.Set("logical", count.logical);
  result.Set("quota", count.quota > 0 ? static_cast<Napi::Value>(Napi::Number::New(env, count.quota)) : env.Null());
  result.Set("threads", choice.problem.empty() ? static_cast<Napi::Value>(Napi::Number::New(env, choice.threads)) : env.Null());
  result.Set("threadsReason", choice.problem.empty() ? choice.reason : choice.problem);
  return result;
}

Napi::Object cuda(Napi::Env env) {
  Napi::Object compiler = Napi::Object::New(env);
  compiler.Set("path", text_or_null(env, build_info::cuda_compiler_path));
  compiler.Set("version", text_or_null(env, build_info::cuda_compiler_version));
  compiler.Set("unavailableReason", text_or_null(env, build_info::cuda_compiler_reason));

  const CudaProbe probe = probe_cuda();
  Napi::Array devices = Napi::Array::New(env);
  for (size_t i = 0; i < probe.devices.size(); ++i) {
    const CudaDevice& device = probe.devices[i];
    Napi::Object item = Napi::Object::New(env);
    item.Set("name", device.name);
    item.Set("computeCapability", std::to_string(device.major) + "." + std::to_string(device.minor));
    item.Set("memoryBytes", Napi::Number::New(env, static_cast<double>(device.memory_bytes)));
    devices.Set(static_cast<uint32_t>(i), item);
  }
  const int v = probe.driver_version;
  Napi::Object result = Napi::Object::New(env);
  result.Set("compiler", compiler);
  result.Set("driverVersion", text_or_null(env, v == 0 ? "" : std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10)));
  result.Set("devices", devices);
  result.Set("unavailableReason", text_or_null(env, probe.reason));
  return result;
}

}  // namespace

Napi::Value describe_machine(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Napi::Object result = Napi::Object::New(env);
  result.Set("version", build_info::version);
  result.Set("builtWith", build_info::compiler);
  result.Set("cpu", cpu(env));
  result.Set("cores", cores(env));
  result.Set("cuda", cuda(env));
  return result;
}

}  // namespace trilithon::binding
