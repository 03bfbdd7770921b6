#include "binding/ops.h"

#include <cmath>

#include "binding/convert.h"
#include "binding/environment.h"
#include "include/op.h"
#include "pool/float-environment.h"

namespace trilithon::binding {
namespace {

constexpr size_t max_args = 32;

bool is_absent(const Napi::Value& value) { return value.IsUndefined() || value.IsNull(); }

void fill_value(Napi::Env env, const OpEntry& entry, const ArgSpec& spec, const Napi::Value& given, TensorTable& tensors, ArgValue& value) {
  switch (spec.kind) {
    case ArgKind::input:
    case ArgKind::output:
    case ArgKind::inout: {
      // What is left out is judged by the checks of the op, which know whether it may be.
      if (is_absent(given)) return;
      const double number = given.IsNumber() ? given.As<Napi::Number>().DoubleValue() : NAN;
      if (!(number >= 0 && number <= static_cast<double>(max_safe_integer)) || number != std::floor(number)) {
        throw_invalid(env, entry.name, spec.name, "a tensor handle", describe(given));
      }
      throw_if_failed(env, tensors.find(entry.name, spec.name, static_cast<TensorHandle>(number), value.tensor));
      return;
    }
    case ArgKind::number:
      if (!given.IsNumber()) throw_invalid(env, entry.name, spec.name, "a number", describe(given));
      value.number = given.As<Napi::Number>().DoubleValue();
      return;
    case ArgKind::integer:
      value.integer = to_integer(env, entry.name, spec.name, given, -max_safe_integer, max_safe_integer);
      return;
    case ArgKind::flag:
      if (!given.IsBoolean()) throw_invalid(env, entry.name, spec.name, "true or false", describe(given));
      value.integer = given.As<Napi::Boolean>().Value() ? 1 : 0;
      return;
  }
}

void call_op(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const OpEntry& entry = *static_cast<const OpEntry*>(info.Data());
  Environment& environment = Environment::of(env);
  Runtime& runtime = environment.runtime(env);
  TensorTable& tensors = environment.tensors(env);
  ArgValue values[max_args];
  for (size_t i = 0; i < entry.args.size(); ++i) fill_value(env, entry, entry.args[i], info[i], tensors, values[i]);
  Status status;
  {
    const FloatEnvironment float_environment(runtime.profile());
    status = entry.run(entry, values, runtime);
  }
  throw_if_failed(env, status);
}

const char* kind_name(ArgKind kind) {
  switch (kind) {
    case ArgKind::input:
      return "input";
    case ArgKind::output:
      return "output";
    case ArgKind::inout:
      return "inout";
    case ArgKind::number:
      return "number";
    case ArgKind::integer:
      return "integer";
    case ArgKind::flag:
      return "flag";
  }
  return "";
}

Napi::Value describe_ops(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  Napi::Array list = Napi::Array::New(env);
  for (const OpEntry& entry : all_ops()) {
    Napi::Array args = Napi::Array::New(env);
    for (const ArgSpec& spec : entry.args) {
      Napi::Object arg = Napi::Object::New(env);
      arg.Set("name", spec.name);
      arg.Set("kind", kind_name(spec.kind));
      arg.Set("optional", spec.has(optional));
      arg.Set("shape", spec.shape);
      Napi::Array dtypes = Napi::Array::New(env);
      for (int i = 0; i < dtype_count; ++i) {
        if (spec.dtypes.has(static_cast<DType>(i))) dtypes.Set(dtypes.Length(), dtype_name(static_cast<DType>(i)));
      }
      arg.Set("dtypes", dtypes);
      args.Set(args.Length(), arg);
    }
    Napi::Object item = Napi::Object::New(env);
    item.Set("op", entry.op);
    item.Set("name", entry.name);
    item.Set("summary", entry.summary);
    item.Set("args", args);
    list.Set(list.Length(), item);
  }
  return list;
}

}  // namespace

void export_ops(Napi::Env env, Napi::Object exports) {
  Napi::Object ops = Napi::Object::New(env);
  for (const OpEntry& entry : all_ops()) {
    if (entry.args.size() > max_args) Napi::Error::Fatal("export_ops", entry.name);
    ops.Set(entry.name, Napi::Function::New<call_op>(env, entry.name, const_cast<OpEntry*>(&entry)));
  }
  exports.Set("ops", ops);
  exports.Set("describeOps", Napi::Function::New<describe_ops>(env, "describeOps"));
}

}  // namespace trilithon::binding
