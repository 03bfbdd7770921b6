import { readFileSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'
import { type PluginPlace, pascalCase, pluginNames } from './plugin-names.ts'
import { pluginPackage } from './plugin-package.ts'
import { resolveSeamTemplate } from './seam-templates.ts'

export interface PluginRequest {
  /** npm name, with a scope or without. */
  readonly name: string
  /** Id of the seam: `router`. */
  readonly seam: string
  readonly place: PluginPlace
  /** Whether a path below the place is taken already. */
  readonly exists: (path: string) => boolean
}

/** A plugin that is not written yet. Paths are relative to the workspace's root, or to where the package's folder goes. */
export interface PluginPlan {
  readonly folder: string
  readonly files: readonly { readonly path: string; readonly text: string }[]
  /** What to do next, one sentence or command per line. */
  readonly next: readonly string[]
}

/**
 * The files of a new plugin: it compiles, passes `describePlugin`, and fails the suite of its seam with the list of what to write.
 *
 * Both `trilithon new plugin` and the generator for nx (`tools/nx-plugin`) write what this plans. The templates therefore stand here and not
 * with the generator: an installed command line has neither nx nor the workspace.
 *
 * Throws `USAGE_INVALID` for a bad name, an unknown seam, and a place that is taken.
 */
export function planPlugin({ name, seam, place, exists }: PluginRequest): PluginPlan {
  const template = resolveSeamTemplate(seam)
  const names = pluginNames(name, place)
  const { baseName, packageName } = names
  const folder = place === 'workspace' ? `plugins/${baseName}` : baseName
  const taken = [folder, ...(place === 'workspace' ? [`packages/${baseName}`, ...(baseName === 'native' ? ['native'] : [])] : [])]
  const obstacle = taken.find(exists)
  if (obstacle !== undefined)
    throw new TrilithonError('USAGE_INVALID', `${obstacle} exists already`, { path: obstacle, hint: 'Choose another name, or remove it.' })

  const sources = ['index.ts', 'filling.ts', 'test.ts'].map((file) => readTemplate(`${seam}/${file}`))
  const plainClass = pascalCase(baseName)
  // A plugin called `router` must not hide the token that its own files import, nor one called `index` the entry.
  const isFree = baseName !== 'index' && sources.every((text) => !new RegExp(`\\b${plainClass}\\b`).test(text))
  const [className, fileName] = isFree ? [plainClass, baseName] : [`My${plainClass}`, `my-${baseName}`]
  const testCommand = place === 'workspace' ? `\`./trilithon test ${folder}\`` : '`npm test`'
  const words: Readonly<Record<string, string>> = {
    ...names,
    className,
    fileName,
    seamName: template.title,
    example: template.example(names),
    testCommand: `${testCommand} runs the cases of the kit, @trilithon/testing, on this package.`,
  }
  const fill = (text: string) => text.replace(/\{\{(\w+)\}\}/g, (match, word: string) => words[word] ?? match)
  const [index = '', filling = '', test = ''] = sources
  const files = {
    'package.json': `${JSON.stringify(pluginPackage(names, template, place), null, 2)}\n`,
    'tsconfig.json': readTemplate(`${place}/tsconfig.json`),
    'tsconfig.build.json': readTemplate(`${place}/tsconfig.build.json`),
    'README.md': fill(readTemplate('README.md')),
    'src/index.ts': fill(index),
    [`src/${fileName}.ts`]: fill(filling),
    [`src/${fileName}.test.ts`]: fill(test),
  }
  return {
    folder,
    files: [
      ...Object.entries(files).map(([file, text]) => ({ path: `${folder}/${file}`, text })),
      ...(place === 'workspace'
        ? [
            {
              path: `.changeset/${baseName}.md`,
              text: `---\n"${packageName}": minor\n---\n\nTo write: what ${packageName} brings, in one sentence.\n`,
            },
          ]
        : []),
    ],
    next:
      place === 'workspace'
        ? ['.tools/node_modules/.bin/pnpm install', `./trilithon test ${folder}`]
        : [`cd ${folder}`, 'npm install', 'npm test'],
  }
}

const readTemplate = (file: string): string => readFileSync(new URL(`../../templates/plugin/${file}.template`, import.meta.url), 'utf8')
