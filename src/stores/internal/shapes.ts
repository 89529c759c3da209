/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const credentialKeyLayerKeychain = "service:s"

export const memoryToolsMake = "namespace:s~effect/Effect~"

export const redisLedgerLayer = "prefix?:s"

export const storageLayerFile = "folder:s;fsync?:b"

export const traceExportSend = "url:s;serviceName?:s;headers?:ao"

export const traceStoreRecord = "deltas?:b"
