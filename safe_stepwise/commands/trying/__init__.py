"""What the Space's page does with what strangers type, whichever library draws it."""
