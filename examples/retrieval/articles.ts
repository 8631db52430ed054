/** Articles of a help page. */
export const articles = [
  "How to reset your password when you cannot log in",
  "Cancel your subscription at the end of the month",
  "Refunds: when we return your payment",
  "Track your delivery and find a missing parcel",
  "Download invoices and receipts",
  "Change your address or postal code",
  "Redeem a voucher or a discount code",
  "The app shows an error message or a blank screen",
  "Delete your account and all of your data",
  "Talk to our support team",
  "Send back a broken or wrong article",
  "Opening hours of the shop",
];
