/** All routes of the server, with those of its options (`more`). A protocol adds its table of routes here. */
import { a2aRoutes } from "./a2aRoutes.ts"
import { agUiRoutes } from "./agUiRoutes.ts"
import { aiSdkRoutes } from "./aiSdkRoutes.ts"
import { langGraphRoutes } from "./langGraphRoutes.ts"
import { openAiRoutes } from "./openAiRoutes.ts"
import type { Route } from "./route.ts"
import { runRoutes } from "./runRoutes.ts"
import { socketRoutes } from "./socketRoutes.ts"
import { systemRoutes, withApi } from "./systemRoutes.ts"
import { threadRoutes } from "./threadRoutes.ts"

/** The routes of protocols of other clients. */
const foreign = {
  a2a: a2aRoutes,
  agUi: agUiRoutes,
  aiSdk: aiSdkRoutes,
  langGraph: langGraphRoutes,
  openAi: openAiRoutes
}

/** The routes of a server, and of the protocols that it speaks beside its own. */
export const makeRoutes = (
  protocols: ReadonlyArray<keyof typeof foreign>,
  more: ReadonlyArray<Route>
): ReadonlyArray<Route> =>
  withApi([
    ...more,
    ...threadRoutes,
    ...runRoutes,
    ...socketRoutes,
    ...systemRoutes,
    ...Array.from(new Set(protocols)).flatMap((name) => foreign[name])
  ])
