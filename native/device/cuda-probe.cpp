#include "device/cuda-probe.h"

#include <dlfcn.h>

namespace trilithon {
namespace {

// From the driver's interface, which is stable: results and device attributes that the probe needs.
constexpr int cuda_success = 0;
constexpr int cuda_no_device = 100;
constexpr int attribute_major = 75;
constexpr int attribute_minor = 76;

template <typename Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

CudaProbe probe_cuda() {
  CudaProbe probe;
  // Never closed: a driver that has been initialised does not survive being unloaded.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    probe.reason = "no NVIDIA driver: libcuda.so.1 could not be loaded";
    return probe;
  }
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_memory)(size_t*, int) = nullptr;
  int (*error_string)(int, const char**) = nullptr;
  if (!resolve(library, "cuInit", init) || !resolve(library, "cuDriverGetVersion", driver_version) ||
      !resolve(library, "cuDeviceGetCount", device_count) || !resolve(library, "cuDeviceGet", device_get) ||
      !resolve(library, "cuDeviceGetName", device_name) || !resolve(library, "cuDeviceGetAttribute", device_attribute) ||
      !resolve(library, "cuDeviceTotalMem_v2", device_memory) || !resolve(library, "cuGetErrorString", error_string)) {
    probe.reason = "the NVIDIA driver is too old: libcuda.so.1 lacks a function that the probe needs";
    return probe;
  }
  driver_version(&probe.driver_version);
  if (const int result = init(0); result != cuda_success) {
    const char* text = nullptr;
    error_string(result, &text);
    probe.reason = result == cuda_no_device ? "the NVIDIA driver finds no device"
                                            : std::string("the NVIDIA driver does not start: ") + (text ? text : "unknown error");
    return probe;
  }
  int count = 0;
  device_count(&count);
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (device_get(&device, i) != cuda_success) continue;
    CudaDevice found;
    char name[256] = "";
    size_t bytes = 0;
    device_name(name, sizeof name, device);
    device_attribute(&found.major, attribute_major, device);
    device_attribute(&found.minor, attribute_minor, device);
    device_memory(&bytes, device);
    found.name = name;
    found.memory_bytes = bytes;
    probe.devices.push_back(found);
  }
  if (probe.devices.empty()) probe.reason = "the NVIDIA driver finds no device";
  return probe;
}

}  // namespace trilithon
