// Says whether a CUDA device can be used, or in one sentence why not.
#pragma once

#include <string>
#include <vector>

namespace trilithon {

struct CudaDevice {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  unsigned long long memory_bytes = 0;
};

struct CudaProbe {
  std::vector<CudaDevice> devices;
  int driver_version = 0;  // 13000 for 13.0; 0 without a driver
  std::string reason;      // empty when there is a device
};

// Loads the driver by name at run time: the addon links no CUDA library and so loads on every machine.
CudaProbe probe_cuda();

}  // namespace trilithon
