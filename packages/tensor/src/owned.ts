/** Something with an end: what a scope frees. */
export abstract class Owned {
  /** The lifetime that ends this, or null: then whoever holds it disposes it. For `Lifetime` only. */
  owner: Lifetime | null = null
  /** Where `owner` lists this. For `Lifetime` only. */
  place = 0

  /** Ends this; a second time is an error. */
  abstract dispose(): void
}

/** A list of what ends together. Adding and removing take constant time. */
export class Lifetime {
  private readonly members: Owned[] = []

  add(member: Owned): void {
    member.owner = this
    member.place = this.members.length
    this.members.push(member)
  }

  remove(member: Owned): void {
    const last = this.members.pop()
    if (last !== undefined && last !== member) {
      this.members[member.place] = last
      last.place = member.place
    }
    member.owner = null
  }

  /** Disposes every member, newest first; all of them also when one refuses, and then throws the first refusal. */
  end(): void {
    let refusal: { readonly error: unknown } | undefined
    for (let member = this.members.pop(); member !== undefined; member = this.members.pop()) {
      member.owner = null
      try {
        member.dispose()
      } catch (error) {
        refusal ??= { error }
      }
    }
    if (refusal !== undefined) throw refusal.error
  }
}
