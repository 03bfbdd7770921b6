import type { TurnRenderer } from '../turn-renderer.ts'
export declare function createLetterRenderer(): TurnRenderer
