#!/usr/bin/env node
import { runCommandLine } from './run-command-line.ts'

process.exitCode = await runCommandLine(process.argv.slice(2), {
  workingDirectory: process.cwd(),
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
})
