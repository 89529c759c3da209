import { NodeServices } from "@effect/platform-node"
import { Layer } from "effect"
import { JsonlSessions } from "effect-deepagents/sessions"
import { SqliteSessions } from "../../../src/sessions/sqlite/index.ts"

/** A store that other processes can open, too: as safe as it can be. */
export const layer = (kind: string, path: string) =>
  kind === "sqlite"
    ? SqliteSessions.layer({ file: `${path}/sessions.db`, synchronous: "full" })
    : JsonlSessions.layer({ folder: path, fsync: true }).pipe(Layer.provide(NodeServices.layer))
