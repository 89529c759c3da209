/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const branchLeave = "to:sz;summarizer:~effect-deepagents/Agent~"

export const chatMake = "metadata?:o;busy?:'queue''refuse';parts?:b"

export const fileCheckpointsLayer =
  "folders:[s];file?:s;locate?:f;omit?:[s];maxFileBytes?:n;maxScanBytes?:n;maxPaths?:n"

export const fileCheckpointsRecord = "threadId:s;title?:s;goesOn?:b;onProblem?:f"

export const jsonlSessionsLayer = "folder:s;fsync?:b"

export const redisSessionsLayer = "prefix?:s"

export const sessionStoreCopy = "name:s"

export const sessionStoreJournalWith = "busy?:'queue''refuse';parts?:b"

export const sqliteClientLayer = "file:s;synchronous?:'full''normal';transformQueryNames?:f;transformResultNames?:f"

export const sqliteSessionsLayer = "file:s;synchronous?:'full''normal'"
