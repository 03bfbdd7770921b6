import { describeRouter } from '@trilithon/testing'
import { StickyRouter, stickyRouter } from './sticky-router.ts'

describeRouter('sticky router', () => new StickyRouter(1000), { capabilities: stickyRouter.capabilities })
