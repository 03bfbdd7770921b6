/**
 * Tokenisers and chat renderers: messages to token ids, each token with its message, history never tokenised twice. Importing it has no effect.
 *
 * @module
 */
export { type CreateRendererOptions, createRenderer, type RendererTable } from './create-renderer.ts'
export { createGlmRenderer } from './families/glm-renderer.ts'
export { createQwen3Renderer } from './families/qwen3-renderer.ts'
export type { ThinkingOptions } from './families/thinking-options.ts'
export { type Message, type MessageRole, messageRoles, parseMessages, type ToolCall, type ToolDefinition } from './messages.ts'
export {
  type Extension,
  findExtensionBreak,
  maskByRole,
  type Renderer,
  type Rendering,
  type RenderOptions,
  type RoleMask,
} from './renderer.ts'
export { type ChatTemplate, compileChatTemplate, type TemplateInput } from './template/chat-template.ts'
export { createTemplateRenderer, type TemplateRendererOptions } from './template/template-renderer.ts'
export { type CharTokenizer, createCharTokenizer } from './tokenizer/char-tokenizer.ts'
export { loadTokenizer } from './tokenizer/load-tokenizer.ts'
export type { Tokenizer } from './tokenizer/tokenizer.ts'
