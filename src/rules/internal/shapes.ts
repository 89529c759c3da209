/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */

export const auditRecords = "threadId?:s;since?:n"

export const decisionsLabelled = "rules:s;limit?:n;concurrency?:n"

export const inboxClassify = "classify:f;by?:o;every?:d"

export const inboxLayer = "deliver:f;severity?:f"

export const inboxWatch = "every?:d"

export const notifySlack = "url:~effect/Redacted~"

export const notifyTelegram = "token:~effect/Redacted~;chatId:s;baseUrl?:s"

export const notifyWebhook = "url:~effect/Redacted~;headers?:<~effect/Redacted~>"

export const policyCompile = "known?:ao"

export const smtpNotifyLayer = "host:s;port?:n;user?:s;password?:~effect/Redacted~;from:s;to:[s];insecure?:b"
