/** The network and its rules, sign-ins by OAuth, secrets on their way out. */
export * as Network from "./Network.ts"
export * as OAuth from "./OAuth.ts"
export * as OAuthError from "./OAuthError.ts"
export * as Secrets from "./Secrets.ts"
