/**
 * A renderer for tests: one id per character, 2 ends an answer. A message of the role system cannot follow an answer, so that tests can break the extension.
 */
export function createLetterRenderer() {
  const encode = (text) => [...text].map((letter) => letter.charCodeAt(0))
  const textOf = (messages) => messages.map(({ role, content }) => (role === 'assistant' ? `${content}\u0002` : content)).join('')
  return {
    stopIds: [2],
    render: (messages) => ({ ids: Uint32Array.from(encode(textOf(messages))) }),
    extend(previous, completionIds, next) {
      if (next.some(({ role }) => role === 'system')) return { broken: 'a system message cannot follow an answer' }
      const closed = completionIds.at(-1) === 2 ? [] : [2]
      return { prompt: { ids: Uint32Array.from([...previous.ids, ...completionIds, ...closed, ...encode(textOf(next))]) } }
    },
    decode: (ids) => String.fromCharCode(...ids),
  }
}
