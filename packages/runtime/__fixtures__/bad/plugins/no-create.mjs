import { Router } from '@trilithon/core'

export default { name: 'no-create', fills: Router, claims: [] }
