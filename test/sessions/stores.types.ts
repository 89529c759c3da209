/** The services of each store, and the errors of opening it. */
import type { Layer } from "effect"
import type { SessionError } from "effect-deepagents"
import type { SessionStore } from "effect-deepagents/sessions"
import * as RedisSessions from "effect-deepagents/sessions/RedisSessions"
import * as SqliteClient from "effect-deepagents/sessions/SqliteClient"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import type * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import type { Redis } from "effect/persistence"
import type { SqlClient, SqlError } from "effect/sql"

type Is<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <A, B>(_: Is<A, B>) => {}

type Store = SessionStore.SessionStore

const sqlite = SqliteSessions.layer({ file: "x.db" })
is<typeof sqlite, Layer.Layer<Store, SessionError.SessionError>>(true)
is<typeof SqlSessions.layer, Layer.Layer<Store, SessionError.SessionError, SqlClient.SqlClient>>(true)
const redis = RedisSessions.layer()
is<typeof redis, Layer.Layer<Store, never, Redis.Redis>>(true)
const client = SqliteClient.layer({ file: "x.db" })
is<typeof client, Layer.Layer<SqlClient.SqlClient | SqliteClient.SqliteClient, SqlError.SqlError>>(true)
// @ts-expect-error a file is needed
SqliteClient.layer({})
// @ts-expect-error there are two ways only
SqliteSessions.layer({ file: "x.db", synchronous: "off" })
