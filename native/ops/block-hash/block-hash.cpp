#include "ops/block-hash/block-hash.h"

#include <string>

#include "include/check.h"
#include "pool/runtime.h"

namespace trilithon::block_hash {

Status run(const Digest& a, Runtime&) {
  Check check(Digest::name);
  Dim bytes("bytes"), hash("hash bytes", 32);
  check.shape("bytes", a.bytes, {&bytes});
  check.shape("hash", a.hash, {&hash});
  if (!check.ok()) return check.status();
  digest_reference(a);
  return {};
}

Status run(const Root& a, Runtime&) {
  Check check(Root::name);
  Dim salt("bytes"), profile("bytes"), format("bytes"), tenant("bytes"), hash("hash bytes", 32);
  check.shape("salt", a.salt, {&salt});
  check.shape("profile", a.profile, {&profile});
  check.shape("format", a.format, {&format});
  check.shape("tenant", a.tenant, {&tenant});
  check.shape("hash", a.hash, {&hash});
  if (!check.ok()) return check.status();
  root_reference(a);
  return {};
}

Status run(const Chain& a, Runtime&) {
  Check check(Chain::name);
  Dim parent("hash bytes", 32), tokens("tokens"), hash("hash bytes", 32);
  check.that(a.block_size >= 1, "block_size", "a number >= 1", std::to_string(a.block_size));
  check.shape("parent", a.parent, {&parent});
  check.shape("tokens", a.tokens, {&tokens});
  if (!check.ok()) return check.status();
  Dim blocks("tokens / block_size", tokens / a.block_size);
  check.shape("hashes", a.hashes, {&blocks, &hash});
  for (int64_t i = 0; i < tokens && check.ok(); ++i) {
    const int32_t token = a.tokens.as<int32_t>()[i];
    if (token < 0) check.that(false, "tokens", "token ids >= 0", std::to_string(token) + " at " + std::to_string(i));
  }
  if (!check.ok()) return check.status();
  chain_reference(a);
  return {};
}

}  // namespace trilithon::block_hash

namespace trilithon {

void register_block_hash(OpRegistry& registry) {
  add_entry<block_hash::Digest>(registry);
  add_entry<block_hash::Root>(registry);
  add_entry<block_hash::Chain>(registry);
}

}  // namespace trilithon
