import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { type ComposeRequest, compose } from '../src/compose/compose.ts'
import type { Composition } from '../src/compose/composition.ts'

/** A working directory of its own for one test, with the files that it needs. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'trilithon-compose-'))

  write(files: Readonly<Record<string, string>>): this {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.path, name)), { recursive: true })
      writeFileSync(join(this.path, name), text)
    }
    return this
  }

  compose(root: ComposeRequest['root'], argv: readonly string[], more: Partial<ComposeRequest> = {}): Promise<Composition> {
    return compose({ root, argv, workingDirectory: this.path, environment: {}, ...more })
  }

  /** The single problems of a composition that fails. */
  async problems(
    root: ComposeRequest['root'],
    argv: readonly string[],
    more: Partial<ComposeRequest> = {},
  ): Promise<readonly TrilithonError[]> {
    try {
      await this.compose(root, argv, more)
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      return error.problems.length > 0 ? error.problems : [error]
    }
    throw new Error('the composition is sound')
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
