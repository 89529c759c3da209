/** All routes of the server. A protocol adds its table of routes here. */
import type { Route } from "./route.ts"
import { runRoutes } from "./runRoutes.ts"
import { systemRoutes, withApi } from "./systemRoutes.ts"
import { threadRoutes } from "./threadRoutes.ts"

/** The routes of all protocols. */
export const routes: ReadonlyArray<Route> = withApi([...threadRoutes, ...runRoutes, ...systemRoutes])
