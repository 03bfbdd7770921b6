import type { FileLayer } from '@trilithon/core'

/** All bytes of a file. Errors are those of the file layer. */
export function readBytes(path: string, files: FileLayer): Uint8Array {
  const file = files.open(path, 'r')
  try {
    const bytes = new Uint8Array(file.size)
    return bytes.subarray(0, file.read(bytes, 0))
  } finally {
    file.close()
  }
}

export function readText(path: string, files: FileLayer): string {
  return new TextDecoder().decode(readBytes(path, files))
}

/** Writes a whole file; waits until it is on the disk where it is to outlive the power. */
export function writeText(path: string, text: string, files: FileLayer, { isDurable = true }: { readonly isDurable?: boolean } = {}): void {
  const file = files.open(path, 'w')
  try {
    file.write(new TextEncoder().encode(text))
    if (isDurable) file.sync()
  } finally {
    file.close()
  }
}
