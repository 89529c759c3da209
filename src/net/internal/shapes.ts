/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const networkLayerCached = "maxBytes?:n;timeToLive?:d"

export const nodeEgressStart = "rules:o;maxBytes?:n;resolve?:f;listener?:o"

export const nodeNetworkLayer = "resolve?:f"

export const nodeNetworkLayerCached = "maxBytes?:n;timeToLive?:d;resolve?:f"

export const oAuthAccessToken = "refused?:~effect/Redacted~"

export const oAuthLayer = "redirect?:o"
