"""Sixty messenger chats, half with somebody who does harm, half innocent with the same topics; two blind writers."""
