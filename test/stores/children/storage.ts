import * as NodeServices from "@effect/platform-node/NodeServices"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import { Storage } from "effect-deepagents/stores"
import * as Layer from "effect/Layer"

/** A storage that other processes can open, too. */
export const storage = (kind: string, path: string) =>
  kind === "sqlite"
    ? Storage.layerSql.pipe(Layer.provide(SqliteClient.layer({ file: `${path}/stores.db` })))
    : Storage.layerFile({ folder: path }).pipe(Layer.provide(NodeServices.layer))
