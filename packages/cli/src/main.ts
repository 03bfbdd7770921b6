#!/usr/bin/env node
import { runCommandLine } from './run-command-line.ts'

// A reader that has seen enough (`trilithon plugins | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

process.exitCode = await runCommandLine(process.argv.slice(2), {
  workingDirectory: process.cwd(),
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
})
