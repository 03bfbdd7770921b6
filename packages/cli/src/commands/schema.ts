import { TrilithonError } from '@trilithon/core'
import type { RootName } from '@trilithon/runtime'
import { Command } from 'commander'
import type { CommandLineHost } from '../host.ts'

/** JSON Schema of a root's files, for editors: `"#:schema ./trilithon-rl.schema.json"` at the top of a TOML file. */
export function schemaCommand(host: CommandLineHost, finish: (status: number) => void): Command {
  return new Command('schema')
    .summary('JSON Schema of the configuration, for editors')
    .description('Prints the JSON Schema (draft 2020-12) of the files of one root.')
    .argument('[root]', 'rl, sft, inference, trainer, orchestrator or env-server', 'rl')
    .option('--verbose', 'show stacks and causes of errors')
    .action(async (root: string) => {
      const { jsonSchemaOf, rootNames } = await import('@trilithon/runtime')
      if (!(rootNames as readonly string[]).includes(root)) {
        throw new TrilithonError('USAGE_INVALID', `there is no root "${root}"`, { path: root, hint: `Roots: ${rootNames.join(', ')}.` })
      }
      host.stdout.write(`${JSON.stringify(jsonSchemaOf(root as RootName), null, 2)}\n`)
      finish(0)
    })
}
